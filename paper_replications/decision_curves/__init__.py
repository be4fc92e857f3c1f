"""Sjoberg & Vickers, dcurves: decision curves in R, with the results that its authors ship."""
