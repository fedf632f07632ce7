"""The sandbox: the only way to run foreign code, such as kernels, modules' host code, compilers, and problems from
elsewhere.

`rules` says what a child may do, `confinement` removes all other rights inside the child, and `processes` starts
children. Nothing else in presage starts a process. Code that runs inside needs only the standard library.
"""
