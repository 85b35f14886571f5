/// The lines of a text in UTF-8.
///
/// A line ends with LF, CR, CRLF, VT, FF, U+0085, U+2028 or U+2029, which is no part of it, or with the end of the
/// bytes. Empty lines are left out, and bytes that are no UTF-8 become U+FFFD.
public struct AsyncLineSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
    public typealias Element = String
    public typealias Failure = Base.Failure

    public struct AsyncIterator: AsyncIteratorProtocol {
        public typealias Element = String
        public typealias Failure = Base.Failure

        @usableFromInline let reader: LineReader?
        /// `nil` where there is a reader, and at the end.
        @usableFromInline var bytes: Base.AsyncIterator?
        @usableFromInline var splitter = LineSplitter()

        @inlinable
        init(_ base: Base) {
            self.reader = LineReader(base)
            self.bytes = self.reader == nil ? base.makeAsyncIterator() : nil
        }

        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Failure) -> String? {
            guard let reader = self.reader else { return try await self.nextOfBytes(isolation: actor) }
            if let line = reader.lineAtHand() { return line }
            do {
                return try await reader.nextLine(isolation: actor)
            } catch {
                // A sequence that has a reader fails with any error, as the reader does.
                guard let failure = error as? Failure else { return nil }
                throw failure
            }
        }

        @inlinable
        mutating func nextOfBytes(isolation actor: isolated (any Actor)?) async throws(Failure) -> String? {
            while let byte = try await self.bytes?.next(isolation: actor) {
                if let line = self.splitter.push(byte) { return line }
            }
            self.bytes = nil
            return self.splitter.finish()
        }
    }

    @usableFromInline let source: Base

    @inlinable
    init(_ base: Base) {
        self.source = base
    }

    @inlinable
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self.source) }
}

extension AsyncLineSequence: Sendable where Base: Sendable {}

@available(*, unavailable)
extension AsyncLineSequence.AsyncIterator: Sendable {}
