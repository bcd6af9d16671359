"""Frameworks around torch, one file each: what is entered, what is a sink, what the framework does
by itself.
"""
