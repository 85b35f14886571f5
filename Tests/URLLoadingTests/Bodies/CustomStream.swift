import Foundation

/// A program's own stream: `rounds` times `size` bytes, then the end or a failure.
final class CustomStream: InputStream {
    private let size: Int
    private var rounds: Int
    private let failure: (any Error)?
    private var status = Status.notOpen
    private(set) var closings = 0

    init(size: Int, rounds: Int, failure: (any Error)? = nil) {
        self.size = size
        self.rounds = rounds
        self.failure = failure
        super.init(data: Data())
    }

    override func open() { self.status = .open }

    override func close() {
        self.status = .closed
        self.closings += 1
    }

    override var streamStatus: Status { self.status }
    override var streamError: (any Error)? { self.status == .error ? self.failure : nil }
    override var hasBytesAvailable: Bool { false }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
        guard self.status == .open else { return -1 }
        guard self.rounds > 0 else {
            guard self.failure == nil else {
                self.status = .error
                return -1
            }
            return 0
        }
        self.rounds -= 1
        let count = min(len, self.size)
        for index in 0..<count { buffer[index] = UInt8(truncatingIfNeeded: self.rounds) }
        return count
    }
}
