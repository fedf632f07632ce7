"""Operations that move data and compute nothing."""
