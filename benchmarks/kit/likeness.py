"""How alike two images are: SSIM, and a measure of gradients that sees edges and skies."""

import numpy
from scipy.ndimage import gaussian_filter1d

#: Gradients as steep as this, in levels a pixel, are just visible. A band of a sky is two or three levels high.
VISIBLE = 2.0


class Wanted:
    """What an image should look like, prepared for many comparisons: height × width × RGB between 0 and 255."""

    def __init__(self, pixels: numpy.ndarray):
        self.pixels = pixels.astype(numpy.float32)
        self.mean = blurred(self.pixels)
        self.variance = blurred(self.pixels ** 2) - self.mean ** 2
        self.steepness = [steepness(level) for level in pyramid(self.pixels)]

    def ssim(self, made: numpy.ndarray) -> float:
        """The mean SSIM over channels, as scikit-image computes it with Gaussian weights; 1 is the same image."""
        made = made.astype(numpy.float32)
        mean = blurred(made)
        variance = blurred(made ** 2) - mean ** 2
        common = blurred(self.pixels * made) - self.mean * mean
        c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
        values = (((2 * self.mean * mean + c1) * (2 * common + c2))
                  / ((self.mean ** 2 + mean ** 2 + c1) * (self.variance + variance + c2)))
        return float(values[5:-5, 5:-5].mean(dtype=numpy.float64))

    def gradients(self, made: numpy.ndarray) -> float:
        """How alike the steepness of both is, at full, half and quarter size; 1 is the same image.

        It sees a band in a sky, which is steep where the original is flat, and ringing beside an edge for the same
        reason: the constant that forgives differences is the steepness that is just visible, not the contrast of the
        whole image. The smaller sizes leave the bands and average the noise of a camera. Errors count by their square,
        so a few that are visible weigh more than many that are not."""
        scores = []
        for wanted, level in zip(self.steepness, pyramid(made.astype(numpy.float32))):
            found = steepness(level)
            alike = (2 * wanted * found + VISIBLE ** 2) / (wanted ** 2 + found ** 2 + VISIBLE ** 2)
            scores.append(1 - float(((1 - alike) ** 2).mean(dtype=numpy.float64)) ** 0.5)
        return sum(scores) / len(scores)


def blurred(pixels: numpy.ndarray) -> numpy.ndarray:
    """A Gaussian of sigma 1.5, cut at eleven pixels."""
    across = gaussian_filter1d(pixels, 1.5, axis=1, truncate=3.5)
    return gaussian_filter1d(across, 1.5, axis=0, truncate=3.5)


def steepness(pixels: numpy.ndarray) -> numpy.ndarray:
    """The length of the gradient at each pixel but the outermost, in levels a pixel, by Prewitt's filters."""
    down = pixels[2:] - pixels[:-2]
    across = pixels[:, 2:] - pixels[:, :-2]
    down = (down[:, :-2] + down[:, 1:-1] + down[:, 2:]) / 6
    across = (across[:-2] + across[1:-1] + across[2:]) / 6
    return numpy.sqrt(down ** 2 + across ** 2)


def pyramid(pixels: numpy.ndarray):
    """The image at full, half and quarter size, by means of squares of pixels."""
    yield pixels
    for _ in range(2):
        height, width = pixels.shape[0] // 2 * 2, pixels.shape[1] // 2 * 2
        pixels = (pixels[:height:2, :width:2] + pixels[1:height:2, :width:2]
                  + pixels[:height:2, 1:width:2] + pixels[1:height:2, 1:width:2]) / 4
        yield pixels
