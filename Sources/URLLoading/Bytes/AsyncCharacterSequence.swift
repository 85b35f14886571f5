/// The characters of a text in UTF-8: its extended grapheme clusters. Bytes that are no UTF-8 become U+FFFD.
public struct AsyncCharacterSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
    public typealias Element = Character
    public typealias Failure = Base.Failure

    public struct AsyncIterator: AsyncIteratorProtocol {
        public typealias Element = Character
        public typealias Failure = Base.Failure

        @usableFromInline var scalars: AsyncUnicodeScalarSequence<Base>.AsyncIterator
        /// A character to which the next scalar may belong.
        @usableFromInline var pending = ""

        @inlinable
        init(_ scalars: AsyncUnicodeScalarSequence<Base>.AsyncIterator) {
            self.scalars = scalars
        }

        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Failure) -> Character? {
            while let scalar = try await self.scalars.next(isolation: actor) {
                self.pending.unicodeScalars.append(scalar)
                guard let first = self.pending.first else { continue }
                let rest = self.pending.dropFirst()
                guard !rest.isEmpty else { continue }
                self.pending = String(rest)
                return first
            }
            defer { self.pending = "" }
            return self.pending.first
        }
    }

    @usableFromInline let source: Base

    @inlinable
    init(_ source: Base) {
        self.source = source
    }

    @inlinable
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(AsyncUnicodeScalarSequence(self.source).makeAsyncIterator())
    }
}

extension AsyncCharacterSequence: Sendable where Base: Sendable {}

@available(*, unavailable)
extension AsyncCharacterSequence.AsyncIterator: Sendable {}
