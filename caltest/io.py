"""Reading predictions from files."""


def read_predictions(path): ...
