import Foundation
import StreamTransport
import Synchronization
import TestSupport

/// A peer on real sockets that accepts one connection, and runs a script on a separate thread.
final class PeerThread: Sendable {
    let port: UInt16
    private let ended = DispatchSemaphore(value: 0)
    private let listening: ListeningDescriptor

    /// The listening descriptor, which only the accepting thread closes: otherwise its number could be reused before that
    /// thread accepts.
    private final class ListeningDescriptor: Sendable {
        private let descriptor: Mutex<Int32?>

        init(_ descriptor: Int32) {
            self.descriptor = Mutex(descriptor)
        }

        /// Wakes the accepting thread.
        func end() {
            self.descriptor.withLock { if let descriptor = $0 { _ = shutdown(descriptor, Int32(SHUT_RDWR)) } }
        }

        func close() {
            self.descriptor.withLock { if let descriptor = $0.take() { _ = Glibc.close(descriptor) } }
        }
    }

    /// - Parameter body: called with the accepted descriptor, which is closed afterwards.
    init(_ body: @escaping @Sendable (Int32) -> Void) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.listening = ListeningDescriptor(listener)
        guard listener >= 0, listen(listener, 1) == 0 else { throw SystemError(errno) }
        var name = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutableBytes(of: &name) { bytes in
            getsockname(listener, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress, &length)
        }
        guard status == 0 else { throw SystemError(errno) }
        self.port = UInt16(bigEndian: name.sin_port)
        let (ended, listening) = (self.ended, self.listening)
        SystemThread.start(named: "peer") {
            let descriptor = accept(listener, nil, nil)
            listening.close()
            if descriptor >= 0 {
                body(descriptor)
                close(descriptor)
            }
            ended.signal()
        }
    }

    deinit {
        self.listening.end()
    }

    /// Whether the peer's script has ended.
    func isDone() -> Bool { self.ended.wait(timeout: .now() + 60) == .success }

    static func send(_ bytes: [UInt8], to descriptor: Int32) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = Glibc.send(descriptor, Array(rest), rest.count, Int32(MSG_NOSIGNAL))
            guard count > 0 else { return }
            rest.removeFirst(count)
        }
    }

    static func receive(_ count: Int, from descriptor: Int32) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let got = recv(descriptor, &bytes, count, Int32(MSG_WAITALL))
        return Array(bytes.prefix(max(0, got)))
    }

    static func receiveToEnd(from descriptor: Int32) -> [UInt8] {
        var all: [UInt8] = []
        while true {
            let piece = self.receive(1, from: descriptor)
            guard !piece.isEmpty else { return all }
            all += piece
            var bytes = [UInt8](repeating: 0, count: 65_536)
            let got = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
            if got > 0 { all += bytes.prefix(got) }
        }
    }
}
