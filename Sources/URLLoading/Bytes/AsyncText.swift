import ByteKernels
import Foundation

/// The characters (extended grapheme clusters) of UTF-8 text. Invalid bytes become U+FFFD.
public struct AsyncCharacterSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
    public typealias Element = Character
    public typealias Failure = Base.Failure

    public struct AsyncIterator: AsyncIteratorProtocol {
        public typealias Element = Character
        public typealias Failure = Base.Failure

        @usableFromInline var scalars: AsyncUnicodeScalarSequence<Base>.AsyncIterator
        /// The current character, which the next scalar may extend.
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

/// The lines of UTF-8 text.
///
/// A line ends with LF, CR, CRLF, VT, FF, U+0085, U+2028 or U+2029, which is not part of it, or with the end of the bytes.
/// Empty lines are omitted. Invalid bytes become U+FFFD.
public struct AsyncLineSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
    public typealias Element = String
    public typealias Failure = Base.Failure

    public struct AsyncIterator: AsyncIteratorProtocol {
        public typealias Element = String
        public typealias Failure = Base.Failure

        @usableFromInline let reader: LineReader?
        /// `nil` if there is a reader, and after the end.
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
            if let line = reader.bufferedLine() { return line }
            do {
                return try await reader.nextLine(isolation: actor)
            } catch {
                // Sequences with a reader have `Failure == any Error`.
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

/// The Unicode scalars of UTF-8 text. Invalid bytes become U+FFFD.
public struct AsyncUnicodeScalarSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
    public typealias Element = Unicode.Scalar
    public typealias Failure = Base.Failure

    public struct AsyncIterator: AsyncIteratorProtocol {
        public typealias Element = Unicode.Scalar
        public typealias Failure = Base.Failure

        @usableFromInline var bytes: Base.AsyncIterator
        @usableFromInline var decoder = ScalarDecoder()
        /// A byte to be decoded again.
        @usableFromInline var leftover: UInt8?
        @usableFromInline var isAtEnd = false

        @inlinable
        init(_ bytes: Base.AsyncIterator) {
            self.bytes = bytes
        }

        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Failure) -> Unicode.Scalar? {
            while !self.isAtEnd {
                guard let byte = try await self.nextByte(isolation: actor) else {
                    self.isAtEnd = true
                    return self.decoder.finish()
                }
                var isTaken = true
                let scalar = self.decoder.push(byte, isTaken: &isTaken)
                if !isTaken { self.leftover = byte }
                if let scalar { return scalar }
            }
            return nil
        }

        @inlinable
        mutating func nextByte(isolation actor: isolated (any Actor)?) async throws(Failure) -> UInt8? {
            if let leftover = self.leftover {
                self.leftover = nil
                return leftover
            }
            return try await self.bytes.next(isolation: actor)
        }
    }

    @usableFromInline let source: Base

    @inlinable
    init(_ source: Base) {
        self.source = source
    }

    @inlinable
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self.source.makeAsyncIterator()) }
}

extension AsyncUnicodeScalarSequence: Sendable where Base: Sendable {}

@available(*, unavailable)
extension AsyncUnicodeScalarSequence.AsyncIterator: Sendable {}

extension AsyncSequence where Element == UInt8 {
    /// The non-empty lines of the bytes as UTF-8 text, without their line ends.
    @inlinable
    public var lines: AsyncLineSequence<Self> { AsyncLineSequence(self) }

    /// The characters of the bytes as UTF-8 text.
    @inlinable
    public var characters: AsyncCharacterSequence<Self> { AsyncCharacterSequence(self) }

    /// The Unicode scalars of the bytes as UTF-8 text.
    @inlinable
    public var unicodeScalars: AsyncUnicodeScalarSequence<Self> { AsyncUnicodeScalarSequence(self) }
}

/// Splits the runs of a channel into lines. Used by one iterator at a time.
@usableFromInline
final class LineReader {
    /// Longest line, in bytes, because it is held in memory; a longer one fails with `URLError.dataLengthExceedsMaximum`.
    private static let limit = 256 << 20

    private let reader: ByteReader
    /// Bytes from `start` are not returned yet; there is no line end between `start` and `scanned`.
    private var bytes: [UInt8] = []
    private var start = 0
    private var scanned = 0
    private var isAtEnd = false

    /// - Returns: `nil` if the sequence does not read from a channel.
    @usableFromInline
    init?(_ sequence: Any) {
        guard let sequence = sequence as? any ByteRunSequence else { return nil }
        self.reader = sequence.makeByteReader()
    }

    /// The next complete line in the buffer.
    @usableFromInline
    func bufferedLine() -> String? {
        while true {
            let bytes = self.bytes
            let mark = bytes.span.bytes.firstLineBreakCandidate(from: self.scanned)
            guard mark < self.bytes.count, let length = self.lineEnd(at: mark) else {
                self.scanned = mark
                return nil
            }
            self.scanned = mark + max(length, 1)
            guard length > 0 else { continue }
            let line = self.start..<mark
            self.start = self.scanned
            if !line.isEmpty { return self.text(line) }
        }
    }

    /// Length of the line end at `mark`, or 0; `nil` if it depends on bytes not received yet.
    private func lineEnd(at mark: Int) -> Int? {
        let rest = self.bytes.count - mark
        switch self.bytes[mark] {
        // The LF of a CRLF ends an empty line, which is omitted.
        case 0x0A...0x0D: return 1
        case 0xC2:
            guard rest > 1 else { return nil }
            return self.bytes[mark + 1] == 0x85 ? 2 : 0
        default:
            guard rest > 1 else { return nil }
            guard self.bytes[mark + 1] == 0x80 else { return 0 }
            guard rest > 2 else { return nil }
            return self.bytes[mark + 2] & 0xFE == 0xA8 ? 3 : 0
        }
    }

    /// The next line; `nil` at the end.
    @usableFromInline
    func nextLine(isolation actor: isolated (any Actor)?) async throws -> String? {
        while !self.isAtEnd {
            if let line = self.bufferedLine() { return line }
            guard self.bytes.count - self.start <= Self.limit else { throw URLError(.dataLengthExceedsMaximum) }
            guard let run = try await self.reader.nextRun(isolation: actor) else { return self.lastLine() }
            self.add(run)
        }
        return nil
    }

    private func add(_ run: [UInt8]) {
        if self.start == self.bytes.count {
            self.bytes = run
        } else {
            self.bytes.removeSubrange(..<self.start)
            self.bytes += run
        }
        self.scanned -= self.start
        self.start = 0
    }

    private func lastLine() -> String? {
        self.isAtEnd = true
        guard self.start < self.bytes.count else { return nil }
        return self.text(self.start..<self.bytes.count)
    }

    private func text(_ range: Range<Int>) -> String {
        self.bytes.withRawSpan { String(repairing: $0.extracting(range)) }
    }
}

/// Splits single bytes into lines.
@usableFromInline
struct LineSplitter {
    @usableFromInline var line: [UInt8] = []
    /// Number of bytes at the end of `line` that may begin a multi-byte line end.
    @usableFromInline var held = 0

    @inlinable
    init() {}

    /// - Returns: the line that ends with `byte`, unless it is empty.
    @inlinable
    mutating func push(_ byte: UInt8) -> String? {
        switch (self.held, byte) {
        case (_, 0x0A...0x0D): return self.end(without: 0)
        case (1, 0x85) where self.line.last == 0xC2: return self.end(without: 1)
        case (2, 0xA8...0xA9): return self.end(without: 2)
        case (1, 0x80) where self.line.last == 0xE2: self.held = 2
        case (_, 0xC2), (_, 0xE2): self.held = 1
        default: self.held = 0
        }
        self.line.append(byte)
        return nil
    }

    /// The last line, unless it is empty.
    @inlinable
    mutating func finish() -> String? { self.end(without: 0) }

    @inlinable
    mutating func end(without count: Int) -> String? {
        self.held = 0
        self.line.removeLast(count)
        guard !self.line.isEmpty else { return nil }
        defer { self.line.removeAll(keepingCapacity: true) }
        return String(decoding: self.line, as: UTF8.self)
    }
}

/// Decodes UTF-8 byte by byte. A truncated sequence becomes one U+FFFD, and so does each byte that cannot begin a sequence
/// (Unicode 3.9, "maximal subparts").
@usableFromInline
struct ScalarDecoder {
    @usableFromInline var value: UInt32 = 0
    /// Number of continuation bytes not received yet.
    @usableFromInline var missing = 0
    /// Range of the next continuation byte.
    @usableFromInline var lowest: UInt8 = 0x80
    @usableFromInline var highest: UInt8 = 0xBF

    @inlinable
    init() {}

    @usableFromInline static var replacement: Unicode.Scalar { "\u{FFFD}" }

    /// - Parameter isTaken: set to `false` if `byte` was not consumed and must be pushed again.
    /// - Returns: a completed scalar.
    @inlinable
    mutating func push(_ byte: UInt8, isTaken: inout Bool) -> Unicode.Scalar? {
        guard self.missing > 0 else { return self.begin(byte) }
        guard byte >= self.lowest, byte <= self.highest else {
            isTaken = false
            return self.finish()
        }
        self.value = self.value << 6 | UInt32(byte & 0x3F)
        self.missing -= 1
        (self.lowest, self.highest) = (0x80, 0xBF)
        return self.missing == 0 ? Unicode.Scalar(self.value) : nil
    }

    @inlinable
    mutating func begin(_ byte: UInt8) -> Unicode.Scalar? {
        switch byte {
        case 0x00...0x7F: return Unicode.Scalar(byte)
        case 0xC2...0xDF: self.expect(1, UInt32(byte & 0x1F))
        case 0xE0: self.expect(2, 0, from: 0xA0)
        case 0xED: self.expect(2, 0x0D, to: 0x9F)
        case 0xE1...0xEF: self.expect(2, UInt32(byte & 0x0F))
        case 0xF0: self.expect(3, 0, from: 0x90)
        case 0xF1...0xF3: self.expect(3, UInt32(byte & 0x07))
        case 0xF4: self.expect(3, 4, to: 0x8F)
        default: return Self.replacement
        }
        return nil
    }

    @inlinable
    mutating func expect(_ missing: Int, _ value: UInt32, from lowest: UInt8 = 0x80, to highest: UInt8 = 0xBF) {
        self.missing = missing
        self.value = value
        self.lowest = lowest
        self.highest = highest
    }

    /// U+FFFD if the input ends within a sequence.
    @inlinable
    mutating func finish() -> Unicode.Scalar? {
        guard self.missing > 0 else { return nil }
        self.expect(0, 0)
        return Self.replacement
    }
}
