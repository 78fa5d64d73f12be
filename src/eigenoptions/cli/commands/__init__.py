"""The commands, one file each: a file is all that a new command needs.

Every file has the same five names:

``POSITION``
    Its place in the list of commands that ``eigenoptions --help`` prints.
``SUMMARY``
    What the command does, in one line of that list.
``EXAMPLES``
    Lines to type, without the word ``eigenoptions``.
``add_arguments(parser)``
    Adds the command's arguments to its `argparse` parser.
``run(arguments)``
    Does the work and prints the result.
"""
