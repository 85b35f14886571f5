/// A sequence of single bytes that never fails.
struct PlainBytes: AsyncSequence {
    struct AsyncIterator: AsyncIteratorProtocol {
        var bytes: IndexingIterator<[UInt8]>

        mutating func next(isolation actor: isolated (any Actor)?) async -> UInt8? { self.bytes.next() }
    }

    let bytes: [UInt8]

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(bytes: self.bytes.makeIterator()) }
}
