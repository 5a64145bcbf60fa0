// In place of react-native: its Image as an <img>. In place of server-only: nothing.
export const PixelRatio = { get: () => 2.625 };
export const Image = ({ source: { uri, headers, width, height, scale }, style }) =>
  <img data-unsigned="" srcSet={`${uri} ${scale}x`} width={width} height={height} data-accept={headers.Accept}
    style={Object.assign({}, ...style)} />;
