import Foundation
import SessionTasks
import StreamTransport
import TestSupport
import URLLoading

/// A connected task with captured streams.
final class CapturedConnectionFixture {
    let peer: PeerThread
    private var pair: CapturedStreamPair?
    private let group: LoopGroup

    /// - Parameter reading: read by the task before its streams are captured.
    init(reading: Int = 0, _ body: @escaping @Sendable (Int32) -> Void) async throws {
        self.peer = try PeerThread(body)
        self.group = try LoopGroup(count: 1)
        let task = StreamTask(
            to: OpeningTarget(.address(LoopbackClient.address(port: self.peer.port))), on: self.group.loops[0])
        task.resume()
        if reading > 0 { _ = try await task.read(minimum: reading, maximum: reading) }
        self.pair = try await withCheckedThrowingContinuation { continuation in
            task.loop.execute {
                task.captureStreams { result in
                    continuation.resume(with: result.map { CapturedStreamPair($0) })
                }
            }
        }
    }

    deinit {
        self.group.stop()
    }

    var input: InputStream { self.pair?.input ?? InputStream(data: Data()) }
    var output: OutputStream { self.pair?.output ?? OutputStream(toMemory: ()) }

    func dropStreams() { self.pair = nil }

    /// Reads until the end.
    func readToEnd(size: Int = 10_000) -> (bytes: [UInt8], last: Int) {
        var all: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: size)
        while true {
            let count = self.input.read(&piece, maxLength: size)
            guard count > 0 else { return (all, count) }
            all += piece.prefix(count)
        }
    }

    func write(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = self.output.write(Array(rest), maxLength: rest.count)
            guard count > 0 else { return false }
            rest.removeFirst(count)
        }
        return true
    }
}
