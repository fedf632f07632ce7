// presage: entry $entry$
#include <math.h>
#include <stddef.h>

$prelude$

void $entry$($parameters$) {
    const Arguments a = {$names$};
    for (int r = 0; r < rows; r++) {
        State s = identity();
        for (int c = 0; c < cols; c++) {
            const State before = s;
            s = joined(s, element(&a, r, c));
            $out$[position(&a, r, c)] = finished(before, s);
        }
    }
}
