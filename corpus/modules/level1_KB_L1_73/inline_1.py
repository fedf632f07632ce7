import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

src = r"""
#include <torch/extension.h>

__global__ void k_convt3d(const float* x, const float* w, float* y, int N, int IC, int OC, int D, int H, int W,
                          int K, int S, int PAD, int OD, int OH, int OW) {
    int ow = threadIdx.x;
    int oh = blockIdx.x;
    int od = blockIdx.y;
    int n = blockIdx.z / OC;
    int oc = blockIdx.z % OC;
    if (ow >= OW) return;
    float sum = 0;
    for (int kd = 0; kd < K; kd++) {
        int td = od + PAD - kd;
        if (td % S != 0) continue;
        int id = td / S;
        if (id < 0 || id >= D) continue;
        for (int kh = 0; kh < K; kh++) {
            int th = oh + PAD - kh;
            if (th % S != 0) continue;
            int ih = th / S;
            if (ih < 0 || ih >= H) continue;
            for (int kw = 0; kw < K; kw++) {
                int tw = ow + PAD - kw;
                if (tw % S != 0) continue;
                int iw = tw / S;
                if (iw < 0 || iw >= W) continue;
                for (int ic = 0; ic < IC; ic++)
                    sum += x[(((n * IC + ic) * D + id) * H + ih) * W + iw] *
                           w[(((ic * OC + oc) * K + kd) * K + kh) * K + kw];
            }
        }
    }
    y[(((n * OC + oc) * OD + od) * OH + oh) * OW + ow] = sum;
}

torch::Tensor run_convt3d(torch::Tensor x, torch::Tensor w, int S, int PAD) {
    int N = x.size(0), IC = x.size(1), D = x.size(2), H = x.size(3), W = x.size(4);
    int OC = w.size(1), K = w.size(2);
    int OD = (D - 1) * S - 2 * PAD + K, OH = (H - 1) * S - 2 * PAD + K, OW = (W - 1) * S - 2 * PAD + K;
    torch::Tensor y = torch::empty({N, OC, OD, OH, OW}, x.options());
    k_convt3d<<<dim3(OH, OD, N * OC), 64>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(),
                                             N, IC, OC, D, H, W, K, S, PAD, OD, OH, OW);
    return y;
}
"""
lib = load_inline(name="k73_convt3d", cpp_sources="torch::Tensor run_convt3d(torch::Tensor x, torch::Tensor w, int S, int PAD);",
                  cuda_sources=src, functions=["run_convt3d"])


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, output_padding: int = 0, groups: int = 1, bias: bool = False):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(in_channels, out_channels, kernel_size=(kernel_size, kernel_size, kernel_size), stride=stride, padding=padding, groups=groups, bias=bias)
        self.stride, self.padding = stride, padding

    def forward(self, x):
        return lib.run_convt3d(x.contiguous(), self.conv_transpose3d.weight, self.stride, self.padding)
