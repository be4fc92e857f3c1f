"""Choe & Ramdas (2024) and Henzi & Ziegel (2022): sequential comparison of forecasts."""
