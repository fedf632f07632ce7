// presage: entry $entry$
#include <math.h>
$helpers$

void $entry$($arguments$) {
    for (int i = 0; i < n; i++) {
        $load$
        $apply$
        $store$
    }
}
