import HTTPTransport
import SessionTasks
import StreamTransport
import Synchronization
import TLSEngine
import WireText

/// A server that sends exactly the bytes of its scripts: the first connection has the first script, and so on. A
/// connection without a script is closed at once; at the end of its script a connection stays open.
final class RawServer: Sendable {
    enum Step: Sendable {
        /// Waits for these bytes, and drops everything up to their end.
        case receive(String)
        case receiveBytes(Int)
        case send(String)
        case sendBytes([UInt8])
        /// FIN; under TLS after close_notify.
        case finish
        case close
        /// Closes with a reset.
        case reset
        /// Ends the transport below TLS, without close_notify.
        case cut
        /// Waits until the gate is opened.
        case wait(Gate)
        case open(Gate)

        static let request = Step.receive("\r\n\r\n")
    }

    let port: UInt16
    private let door: Acceptor
    private let log: Log

    /// The received bytes of each connection.
    final class Log: Sendable {
        private let bytes = Mutex<[[UInt8]]>([])

        func begin() -> Int {
            self.bytes.withLock {
                $0.append([])
                return $0.count - 1
            }
        }

        func add(_ more: some Collection<UInt8>, to index: Int) { self.bytes.withLock { $0[index] += more } }
        var all: [[UInt8]] { self.bytes.withLock { $0 } }
    }

    init(_ scripts: [[Step]], tls: TLSContext? = nil) async throws {
        let log = Log()
        let door = Acceptor(scripts, log: log, tls: tls)
        self.log = log
        self.door = door
        let address = try await withCheckedThrowingContinuation { continuation in
            TestLoops.servers.execute { continuation.resume(with: Result { try door.open() }) }
        }
        self.port = address.port ?? 0
    }

    deinit {
        let door = self.door
        TestLoops.servers.execute { door.close() }
    }

    /// Gives each connection its script. Confined to the servers' loop.
    private final class Acceptor: SocketListenerOwner, @unchecked Sendable {
        private let scripts: [[Step]]
        private let log: Log
        private let tls: TLSContext?
        private var listener: SocketListener?

        init(_ scripts: [[Step]], log: Log, tls: TLSContext?) {
            self.scripts = scripts
            self.log = log
            self.tls = tls
        }

        func open() throws -> SocketAddress {
            let listener = try SocketListener(
                .ipv4(address: 0x7F00_0001, port: 0), on: TestLoops.servers, owner: self)
            self.listener = listener
            return listener.address
        }

        func close() {
            self.listener?.close()
            self.listener = nil
        }

        func accepted(_ socket: AcceptedSocket, by listener: SocketListener) {
            let index = self.log.begin()
            guard
                let connection = try? SocketConnection(
                    adopting: socket.descriptor, peer: socket.peer, on: listener.loop, paused: true)
            else { return }
            guard let tls else { return self.begin(index, on: connection) }
            SecureTransport.upgrade(connection, settings: SecureSettings(context: tls), received: []) { result in
                switch result {
                case .success(let transport): self.begin(index, on: transport)
                case .failure: break
                }
            }
        }

        private func begin(_ index: Int, on transport: any Transport) {
            let script = index < self.scripts.count ? self.scripts[index] : [.close]
            _ = ScriptedConnection(script, on: transport, log: self.log, index: index)
        }

        func acceptingPaused(by listener: SocketListener, _ error: SystemError) {}
        func acceptingResumed(by listener: SocketListener) {}
    }

    /// All received bytes of each connection, as text.
    var received: [String] { self.log.all.map { String(decoding: $0, as: UTF8.self) } }
    func bytes(_ index: Int) -> [UInt8] { self.log.all[index] }
    var connections: Int { self.log.all.count }

    func request(_ method: String = "GET", _ fields: [(String, String)] = []) -> ExchangeRequest {
        let head = RequestHead(method: method, target: "/", fields: FieldLines(fields.map { FieldLine($0.0, $0.1) }))
        return ExchangeRequest(ServerEndpoint(.http, host: "127.0.0.1", port: self.port), head: head)
    }
}
