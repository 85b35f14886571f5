import ByteKernels
import Foundation
import SessionTasks
import StreamTransport
import Synchronization
import TLSEngine

/// A proxy for tests: SOCKS 4, SOCKS 5 without a password (RFC 1928), `CONNECT`, and requests in absolute form, whose connection
/// is relayed to the server of the first request. It connects to literal addresses and `localhost` only.
final class RelayProxy: Sendable {
    let port: Int
    private let acceptor: Acceptor

    /// Number of connections that reached a server.
    var tunnels: Int { self.acceptor.tunnels.withLock { $0 } }

    /// - Parameters:
    ///   - address: to listen at, of IPv4.
    ///   - tls: for the connections of clients; `nil` for none.
    init(at address: UInt32 = 0x7F00_0001, tls: TLSContext? = nil) async throws {
        let acceptor = Acceptor(try Self.group.get().loops[0], tls, address)
        self.acceptor = acceptor
        self.port = try await withCheckedThrowingContinuation { continuation in
            acceptor.loop.execute { continuation.resume(with: Result { try acceptor.open() }) }
        }
    }

    private init(blocking: Void) throws {
        let (acceptor, opened) = (
            Acceptor(try Self.group.get().loops[0], nil, 0x7F00_0001), DispatchSemaphore(value: 0)
        )
        let port = Mutex(Result<Int, any Error>.success(0))
        acceptor.loop.execute {
            let result = Result { try acceptor.open() }
            port.withLock { $0 = result }
            opened.signal()
        }
        opened.wait()
        self.acceptor = acceptor
        self.port = try port.withLock { try $0.get() }
    }

    /// That of all sessions in variants with a proxy.
    static let current = Result { try RelayProxy(blocking: ()) }

    deinit {
        let acceptor = self.acceptor
        acceptor.loop.execute { acceptor.close() }
    }

    private static let group = Result { try LoopGroup(count: 1) }

    /// Confined to its loop.
    private final class Acceptor: SocketListenerOwner, @unchecked Sendable {
        let loop: Loop
        let tunnels = Mutex(0)
        private let tls: TLSContext?
        private let address: UInt32
        private var listener: SocketListener?

        init(_ loop: Loop, _ tls: TLSContext?, _ address: UInt32) {
            self.loop = loop
            self.tls = tls
            self.address = address
        }

        func open() throws -> Int {
            let listener = try SocketListener(.ipv4(address: self.address, port: 0), on: self.loop, owner: self)
            self.listener = listener
            return listener.address.port.map(Int.init) ?? 0
        }

        func close() {
            self.listener?.close()
            self.listener = nil
        }

        func accepted(_ socket: AcceptedSocket, by listener: SocketListener) {
            guard
                let connection = try? SocketConnection(
                    adopting: socket.descriptor, peer: socket.peer, on: self.loop, paused: true)
            else { return }
            guard let tls = self.tls else { return self.begin(connection) }
            SecureTransport.upgrade(connection, settings: SecureSettings(context: tls), received: []) { result in
                if case .success(let secure) = result { self.begin(secure) }
            }
        }

        private func begin(_ connection: any Transport) {
            connection.consumer = Client(connection) { self.tunnels.withLock { $0 += 1 } }
            connection.resumeReading()
        }

        func acceptingPaused(by listener: SocketListener, _ error: SystemError) {}
        func acceptingResumed(by listener: SocketListener) {}
    }

    /// The client's connection until the server is reached.
    private final class Client: TransportConsumer {
        private enum Step {
            case beginning, greeted, connecting
        }

        private let connection: any Transport
        private let didTunnel: () -> Void
        private var step = Step.beginning
        private var received: [UInt8] = []
        private var attempt: ConnectAttempt?

        init(_ connection: any Transport, didTunnel: @escaping () -> Void) {
            self.connection = connection
            self.didTunnel = didTunnel
        }

        func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
            self.received += [UInt8](bytes.bytes)
            let count = bytes.byteCount
            switch self.received.first {
            case 4: self.readSOCKS4()
            case 5: self.readSOCKS()
            default: self.readHead()
            }
            return count
        }

        /// Version, command, port, address, user, 0.
        private func readSOCKS4() {
            guard case .beginning = self.step, self.received.count > 8, let end = self.received[8...].firstIndex(of: 0)
            else { return }
            let numbers = self.received[2..<8].map { UInt32($0) }
            let address = numbers[2] << 24 | numbers[3] << 16 | numbers[4] << 8 | numbers[5]
            self.received.removeFirst(end + 1)
            self.connect(
                .ipv4(address: address, port: UInt16(numbers[0] << 8 | numbers[1])),
                answer: [0, 0x5A, 0, 0, 0, 0, 0, 0], refusal: [0, 0x5B, 0, 0, 0, 0, 0, 0])
        }

        private func readSOCKS() {
            if case .beginning = self.step, self.received.count >= 2, self.received.count >= 2 + Int(self.received[1]) {
                self.received.removeFirst(2 + Int(self.received[1]))
                self.step = .greeted
                self.send([5, 0])
            }
            guard case .greeted = self.step, self.received.count >= 10 else { return }
            if self.received.starts(with: [5, 1, 0, 3, 9] + Array("localhost".utf8)), self.received.count >= 16 {
                self.received.replaceSubrange(3..<14, with: [1, 127, 0, 0, 1])
            }
            // CONNECT to an IPv4 address.
            guard self.received.starts(with: [5, 1, 0, 1]) else { return self.send([5, 8, 0, 1, 0, 0, 0, 0, 0, 0]) }
            let numbers = self.received[4..<10].map { UInt32($0) }
            let address = numbers[0] << 24 | numbers[1] << 16 | numbers[2] << 8 | numbers[3]
            self.received.removeFirst(10)
            self.connect(
                .ipv4(address: address, port: UInt16(numbers[4] << 8 | numbers[5])),
                answer: [5, 0, 0, 1, 0, 0, 0, 0, 0, 0], refusal: [5, 5, 0, 1, 0, 0, 0, 0, 0, 0])
        }

        private static let badGateway = Array("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n".utf8)

        private func readHead() {
            let text = String(decoding: self.received, as: UTF8.self)
            guard case .beginning = self.step, let end = text.range(of: "\r\n\r\n") else { return }
            let words = text.prefix { !$0.isNewline }.split(separator: " ")
            guard words.count == 3 else { return self.connection.reset() }
            let isTunnel = words[0] == "CONNECT"
            let authority = isTunnel ? words[1] : words[1].dropFirst("http://".count).prefix { $0 != "/" }
            let parts = authority.split(separator: ":")
            guard let port = parts.last.flatMap({ UInt16($0) }),
                let address = SocketAddress(
                    literal: parts[0] == "localhost" ? "127.0.0.1" : String(parts[0]), port: port)
            else { return self.send(Self.badGateway) }
            if isTunnel { self.received.removeFirst(text[..<end.upperBound].utf8.count) }
            let answer = isTunnel ? Array("HTTP/1.1 200 OK\r\n\r\n".utf8) : []
            self.connect(address, answer: answer, refusal: Self.badGateway)
        }

        private func send(_ bytes: [UInt8]) {
            bytes.withRawSpan { _ = self.connection.write($0) }
        }

        private func connect(_ address: SocketAddress, answer: [UInt8], refusal: [UInt8]) {
            self.step = .connecting
            self.connection.pauseReading()
            self.attempt = ConnectAttempt(.address(address), on: self.connection.loop, timeout: .seconds(60)) {
                result in
                self.attempt = nil
                guard case .success(let server) = result else {
                    self.send(refusal)
                    return self.connection.close(linger: .seconds(1))
                }
                self.didTunnel()
                if !answer.isEmpty { self.send(answer) }
                if !self.received.isEmpty { self.received.withRawSpan { _ = server.write($0) } }
                let (ahead, back) = (
                    Direction(from: self.connection, to: server), Direction(from: server, to: self.connection)
                )
                self.connection.consumer = ahead
                server.consumer = back
                self.connection.resumeReading()
                server.resumeReading()
            }
        }

        func inputClosed() { self.connection.close(linger: .zero) }
        func outputProgressed() {}
        func transportEnded(_ end: TransportEnd) { self.attempt?.cancel() }
    }

    /// Relays the bytes and the end of one side.
    private final class Direction: TransportConsumer {
        private static let watermark = 65_536
        private let source: any Transport
        private let target: any Transport

        init(from source: any Transport, to target: any Transport) {
            self.source = source
            self.target = target
        }

        func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
            if self.target.write(bytes.bytes) > Self.watermark {
                self.source.pauseReading()
                self.target.awaitProgress()
            }
            return bytes.byteCount
        }

        func inputClosed() { self.target.shutdownOutput() }
        /// What was written to the source of this direction came from its target.
        func outputProgressed() { if self.source.queuedBytes == 0 { self.target.resumeReading() } }

        func transportEnded(_ end: TransportEnd) {
            switch end {
            case .closed: self.target.close(linger: .seconds(1))
            case .abandoned: break
            case .failed: self.target.reset()
            }
        }
    }
}
