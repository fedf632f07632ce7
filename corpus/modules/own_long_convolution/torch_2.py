import torch


def custom_kernel(data):
    """A Toeplitz matrix for each channel and blocks of 64 outputs: matrix products instead of a sum over taps."""
    x, taps = data
    B, C, L = x.shape
    K = taps.shape[1]
    T = 64
    i = torch.arange(T + K - 1, device=x.device)[:, None]
    j = torch.arange(T, device=x.device)[None, :]
    lag = j + K - 1 - i
    band = (lag >= 0) & (lag < K)
    toeplitz = torch.where(band, taps[:, lag.clamp(0, K - 1)], 0.0)
    padded = torch.nn.functional.pad(x, (K - 1, 0))
    windows = padded.unfold(-1, T + K - 1, T).transpose(0, 1).reshape(C, -1, T + K - 1)
    y = torch.bmm(windows, toeplitz)
    return y.view(C, B, L // T, T).transpose(0, 1).reshape(B, C, L)
