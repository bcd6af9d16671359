"""The fix of one rule over many files: `gradlint codemod`, and the same as commands of
`libcst.tool codemod`.
"""
