// presage: entry $entry$
#include <math.h>

$plain$

void $entry$($arguments$) {
    const float *const from[] = {$in_pointers$};
    for (long g = 0; g < $groups$; g++) {
        State s = empty();
        for (long i = 0; i < $group_size$; i++) {
            float in[$inputs$];
            for (int k = 0; k < $inputs$; k++) in[k] = from[k][$element$];
            include(&s, in, i);
        }
        y[g] = finish(&s, $group_size$);
    }
}
