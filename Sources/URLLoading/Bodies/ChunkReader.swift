/// Where a body comes from that takes time to read. Used on the queue of the body alone, but for `isRepeatable`.
protocol ChunkReader: AnyObject, Sendable {
    /// Largest piece that it is asked for, in bytes.
    var chunkSize: Int { get }
    /// Whether it may be asked for what is behind it.
    var isRepeatable: Bool { get }

    /// Reads the bytes from `offset` on into the front of `chunk`, waiting for them if need be.
    /// - Returns: how many; 0 at the end.
    func read(into chunk: inout [UInt8], at offset: Int64) throws -> Int

    /// Called once, last.
    func close()
}
