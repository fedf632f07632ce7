"""Operations that make one value of many."""
