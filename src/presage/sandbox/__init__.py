"""The one way to run anything foreign: kernels, modules' host code, compilers, problems from elsewhere.

`rules` says what a child may do, `confinement` takes everything else away from inside the child, and `processes` starts
children. Nothing else in presage starts a process. What runs inside needs only the standard library.
"""
