import URLLoading

/// The bytes of a channel, as `URLSession.AsyncBytes` has them.
struct ChannelBytes: AsyncSequence, ByteRunSequence {
    struct AsyncIterator: AsyncIteratorProtocol {
        var bytes: ByteIterator

        mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
            try await self.bytes.next(isolation: actor)
        }
    }

    let consumer: ByteConsumer

    init(_ channel: ByteChannel) {
        self.consumer = ByteConsumer(channel)
    }

    func makeByteReader() -> ByteReader { ByteReader(self.consumer) }
    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(bytes: ByteIterator(self.makeByteReader())) }
}
