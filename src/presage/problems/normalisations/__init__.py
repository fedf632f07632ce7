"""Operations that scale a row by its own statistics."""
