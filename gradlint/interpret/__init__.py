"""The abstract interpreter: runs training code with abstract tensors and writes what happened on a
tape.
"""
