"""Tables of rows, from files and frames alike: which columns are what, and what cells mean."""
