float in[$inputs$], out[$outputs$];
#pragma unroll
for (int k = 0; k < $inputs$; k++) in[k] = kept[k].at[i];
apply(in, out);
#pragma unroll
for (int k = 0; k < $outputs$; k++) made[k].at[i] = out[k];
