"""The program that is checked: its files, its names, where the analysis enters it."""
