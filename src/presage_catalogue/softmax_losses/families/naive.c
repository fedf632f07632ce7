// presage: entry $entry$
#include <math.h>
#include <stdint.h>
#include <stddef.h>
#define EXP expf

$prelude$

void $entry$($parameters$) {
    const Arguments a = {$names$};
    for (int r = 0; r < rows; r++) {
        const Row row = row_of(&a, r);
        const size_t start = (size_t)r * cols;
        State s = identity();
        for (int c = 0; c < row.extent; c++) s = included(s, &a, start + c);
        $finish_c$
    }
}
