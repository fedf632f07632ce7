import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

struct P { int N, IC, OC, D, H, W, KD, KH, KW, sd, sh, sw, pd, ph, pw, OD, OH, OW, G; };

__global__ void convt3d_grouped(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, P p) {
    size_t total = (size_t)p.N * p.OC * p.OD * p.OH * p.OW;
    for (size_t idx = blockIdx.x * (size_t)blockDim.x + threadIdx.x; idx < total; idx += (size_t)gridDim.x * blockDim.x) {
        int ow = idx % p.OW;
        size_t t = idx / p.OW;
        int oh = t % p.OH; t /= p.OH;
        int od = t % p.OD; t /= p.OD;
        int oc = t % p.OC;
        int n = t / p.OC;
        int ocg = p.OC / p.G, icg = p.IC / p.G;
        int g = oc / ocg, ol = oc % ocg;
        float acc = 0.f;
        for (int kd = 0; kd < p.KD; ++kd) {
            int a = od + p.pd - kd;
            if (a < 0 || a % p.sd) continue;
            a /= p.sd; if (a >= p.D) continue;
            for (int kh = 0; kh < p.KH; ++kh) {
                int b = oh + p.ph - kh;
                if (b < 0 || b % p.sh) continue;
                b /= p.sh; if (b >= p.H) continue;
                for (int kw = 0; kw < p.KW; ++kw) {
                    int c = ow + p.pw - kw;
                    if (c < 0 || c % p.sw) continue;
                    c /= p.sw; if (c >= p.W) continue;
                    for (int i = 0; i < icg; ++i) {
                        int ic = g * icg + i;
                        acc += x[(((size_t)(n * p.IC + ic) * p.D + a) * p.H + b) * p.W + c]
                             * w[(((size_t)(ic * ocg + ol) * p.KD + kd) * p.KH + kh) * p.KW + kw];
                    }
                }
            }
        }
        y[idx] = acc;
    }
}

torch::Tensor convt3d_g(torch::Tensor x, torch::Tensor w, std::vector<int64_t> s, std::vector<int64_t> pad,
                        std::vector<int64_t> op, int64_t groups) {
    P p;
    p.N = x.size(0); p.IC = x.size(1); p.D = x.size(2); p.H = x.size(3); p.W = x.size(4);
    p.G = groups; p.OC = w.size(1) * groups; p.KD = w.size(2); p.KH = w.size(3); p.KW = w.size(4);
    p.sd = s[0]; p.sh = s[1]; p.sw = s[2]; p.pd = pad[0]; p.ph = pad[1]; p.pw = pad[2];
    p.OD = (p.D - 1) * p.sd - 2 * p.pd + p.KD + op[0];
    p.OH = (p.H - 1) * p.sh - 2 * p.ph + p.KH + op[1];
    p.OW = (p.W - 1) * p.sw - 2 * p.pw + p.KW + op[2];
    auto y = torch::empty({p.N, p.OC, p.OD, p.OH, p.OW}, x.options());
    convt3d_grouped<<<132 * 16, 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), p);
    return y;
}
"""

m = load_inline(name="convt3d_grouped_72",
                cpp_sources="torch::Tensor convt3d_g(torch::Tensor x, torch::Tensor w, std::vector<int64_t> s, std::vector<int64_t> pad, std::vector<int64_t> op, int64_t groups);",
                cuda_sources=SOURCE, functions=["convt3d_g"])


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: tuple, stride: tuple = (1, 1, 1), padding: tuple = (0, 0, 0), output_padding: tuple = (0, 0, 0), groups: int = 1, bias: bool = False):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding, groups=groups, bias=bias)

    def forward(self, x):
        c = self.conv_transpose3d
        return m.convt3d_g(x.contiguous(), c.weight, list(c.stride), list(c.padding), list(c.output_padding), c.groups)
