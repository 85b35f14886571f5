import Foundation

/// Records a stream's events, and reads its available bytes.
final class StreamRecorder: StreamDelegate {
    private(set) var events: [Stream.Event] = []
    private(set) var bytes: [UInt8] = []
    /// Bytes to write when the stream has space.
    var outgoing: [UInt8] = []
    var readSize = 3

    func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
        self.events.append(eventCode)
        if eventCode == .hasBytesAvailable, let input = aStream as? InputStream {
            var piece = [UInt8](repeating: 0, count: self.readSize)
            let count = input.read(&piece, maxLength: piece.count)
            self.bytes += piece.prefix(max(0, count))
        }
        if eventCode == .hasSpaceAvailable, let output = aStream as? OutputStream, !self.outgoing.isEmpty {
            let count = output.write(self.outgoing, maxLength: self.outgoing.count)
            self.outgoing.removeFirst(max(0, count))
        }
    }

    /// Runs the loop of this thread until `condition` holds, or for 240 s.
    static func run(until condition: () -> Bool) -> Bool {
        let end = Date(timeIntervalSinceNow: 240)
        while !condition(), Date() < end {
            guard RunLoop.current.run(mode: .default, before: end) else { return condition() }
        }
        return condition()
    }
}
