"""All numba code: loops over plain arrays, loaded when they are used. No classes, no fastmath."""
