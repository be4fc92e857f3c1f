"""The defaults that verbs share, one a kind."""

#: Replicates behind one p-value or interval.
N_RESAMPLES = 9999
#: Replicates that serve many numbers at once: audits and pictures.
N_TOGETHER = 1999
#: Level of intervals.
LEVEL = 0.95
#: Level of the bars and bands of pictures.
BAND_LEVEL = 0.9
