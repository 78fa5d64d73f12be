"""The studio: a page in which you draw a maze and see its options at once.

The folder ``page`` holds the whole program. Its scripts compute eigenvectors, options,
diffusion times and learning in the browser, by the rules of the library, for mazes of
up to 700 states. Python only hands these files over: to a browser on this machine
(`serve_studio`) or to a folder (`write_studio`).
"""

from eigenoptions.studio.folder import write_studio as write_studio
from eigenoptions.studio.server import serve_studio as serve_studio
