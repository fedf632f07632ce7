// presage: entry $entry$
// presage: grid $naive_grid$
// presage: block 256
$include$

$naive$
