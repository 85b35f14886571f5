import ByteKernels
import Deflate

/// Undoes one coding: bytes that were put into `input` are taken from there as output is asked for.
final class DecodingStage {
    private enum State {
        /// Of `deflate`: whether a header of zlib comes is told by its two bytes.
        case undecided
        case inflating(Inflater)
        /// A member of gzip is done, and a further one may follow (RFC 1952 §2.2).
        case betweenMembers(Inflater)
        /// What still comes is padding.
        case done
    }

    /// Bytes to be decoded, of which the first `taken` are.
    private(set) var input: [UInt8] = []
    private var taken = 0
    private var state: State
    private(set) var isUntouched = true

    /// - Returns: `nil` when there is no memory.
    init?(gzip: Bool) {
        guard gzip else {
            self.state = .undecided
            return
        }
        guard let inflater = Inflater(format: .gzip) else { return nil }
        self.state = .inflating(inflater)
    }

    /// Whether everything that came is decoded, and the coding is at its end.
    var isComplete: Bool {
        guard self.taken == self.input.count else { return false }
        switch self.state {
        case .betweenMembers, .done: return true
        case .undecided, .inflating: return false
        }
    }

    func feed(_ bytes: RawSpan) {
        guard bytes.byteCount > 0 else { return }
        self.isUntouched = false
        if self.taken == self.input.count {
            self.input.removeAll(keepingCapacity: true)
            self.taken = 0
        }
        self.input.append(bytes)
    }

    /// Decodes into the front of `room`.
    /// - Returns: how many bytes; 0 when all input is used up and gives nothing more.
    func decode(into room: inout [UInt8]) throws(ContentDecodingFailure) -> Int {
        var written = 0
        while written == 0 {
            switch self.state {
            case .undecided:
                guard try self.decide() else { return 0 }
            case .inflating(let inflater):
                guard try self.inflate(inflater, into: &room, &written) else { return written }
            case .betweenMembers(let inflater):
                guard self.taken < self.input.count else { return 0 }
                guard self.input[self.taken] == 0x1F else {
                    self.state = .done
                    continue
                }
                inflater.reset()
                self.state = .inflating(inflater)
            case .done:
                self.taken = self.input.count
                return 0
            }
        }
        return written
    }

    /// `deflate` is the zlib format (RFC 9110 §8.4.1.2), and yet some servers send the bare blocks. What begins as zlib
    /// does cannot be such: it would be a stored block with a bit set that nobody sets.
    private func decide() throws(ContentDecodingFailure) -> Bool {
        guard self.input.count - self.taken >= 2 else { return false }
        let header = Int(self.input[self.taken]) << 8 | Int(self.input[self.taken + 1])
        let isZlib = header >> 8 & 0x0F == 8 && header >> 12 <= 7 && header.isMultiple(of: 31)
        guard let inflater = Inflater(format: isZlib ? .zlib : .raw) else { throw .outOfMemory }
        self.state = .inflating(inflater)
        return true
    }

    /// - Returns: whether the stream ended, so that another state goes on.
    private func inflate(
        _ inflater: Inflater, into room: inout [UInt8], _ written: inout Int
    ) throws(ContentDecodingFailure) -> Bool {
        var taken = self.taken
        defer { self.taken = taken }
        do throws(InflateFailure) {
            let input = self.input
            var elements = room.mutableSpan
            var target = elements.mutableBytes
            let progress = try inflater.inflate(
                input.span.bytes, consumed: &taken, into: &target, written: &written)
            guard progress == .streamEnd else { return false }
        } catch {
            throw ContentDecodingFailure(error)
        }
        self.state = inflater.format == .gzip ? .betweenMembers(inflater) : .done
        return true
    }
}
