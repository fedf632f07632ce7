// presage: entry $entry$
// presage: grid $naive_launch$
// presage: block 256
$include$

$naive$
