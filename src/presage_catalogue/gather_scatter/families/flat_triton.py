# presage: tune BLOCK = 1024, 128, 512, 2048, 8192
# presage: tune WARPS = 4, 1, 8
# presage: tune PROGRAMS = 0, 132, 1056
# presage: tune TAIL = 1, 0
# presage: where TAIL == 1 or (PROGRAMS == 0 and WARPS == 4)
#
# A program makes BLOCK neighbouring elements of y, or PROGRAMS of them walk over all blocks. TAIL is the last, partial
# block.
$over_elements$
