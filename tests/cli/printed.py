"""Files that tests of commands write, and the commands that messages print."""

import shlex

#: Few draws, where no number is looked at.
FEW = ("--n-resamples", "99")


def write(path, **columns):
    """Write columns as CSV; return the path as a string."""
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def lines_of(err):
    """Return the lines of a message that begin a command."""
    return [line for line in err.splitlines() if line.startswith(("run:", "if ", "say:"))]


def words_of(line):
    """Return the words of the command that a line prints, without "caltest"."""
    return shlex.split(line.partition("caltest ")[2])


def commands_of(text):
    """Return the words of each printed command, by the line that holds it."""
    return [(line, words_of(line)) for line in lines_of(text)]
