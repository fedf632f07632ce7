import torch


def compute($arguments$):
    $body$


def custom_kernel(data):
    return compute(*data)
