/// A sequence of bytes that come from a channel, so that they can be had by the run where that is faster.
package protocol ByteRunSequence {
    /// As `makeAsyncIterator`.
    func makeByteReader() -> ByteReader
}
