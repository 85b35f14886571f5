import Foundation
import StreamTransport
import Synchronization
import Testing

@Suite("Notifying the service manager, sd_notify(3)")
struct ServiceNotifierTests {
    /// A service manager that takes messages, or does not.
    private final class ServiceManager: Sendable {
        let isBusy = Mutex(false)
        let heard = Mutex<[String]>([])
        let complaints = Mutex(0)
        let now = Mutex(MonotonicInstant(nanoseconds: 0))

        var notifier: ServiceNotifier {
            ServiceNotifier(
                clock: { self.now.withLock { $0 } }, complain: { _ in self.complaints.withLock { $0 += 1 } },
                send: { (state: String) throws(SystemError) in
                    guard !self.isBusy.withLock({ $0 }) else { throw .wouldBlock }
                    self.heard.withLock { $0.append(state) }
                })
        }

        func pass(_ duration: Duration) {
            self.now.withLock { $0 = $0.advanced(by: duration) }
        }
    }

    @Test func lastStateIsSentOnceTheServiceManagerTakesIt() {
        let manager = ServiceManager()
        let notifier = manager.notifier
        manager.isBusy.withLock { $0 = true }
        #expect(!notifier.tell("READY=1"))
        #expect(!notifier.tell("STOPPING=1"))
        notifier.notifyWatchdog()
        #expect(manager.heard.withLock { $0 } == [])
        manager.isBusy.withLock { $0 = false }
        notifier.notifyWatchdog()
        notifier.notifyWatchdog()
        #expect(manager.heard.withLock { $0 } == ["STOPPING=1", "WATCHDOG=1", "WATCHDOG=1"])
        #expect(notifier.retry())
    }

    @Test func failureIsLoggedOnceInAnInterval() {
        let manager = ServiceManager()
        let notifier = manager.notifier
        manager.isBusy.withLock { $0 = true }
        for _ in 0..<10 { notifier.tell("READY=1") }
        #expect(manager.complaints.withLock { $0 } == 1)
        manager.pass(ServiceNotifier.warningInterval)
        notifier.notifyWatchdog()
        #expect(manager.complaints.withLock { $0 } == 2)
    }

    /// A receive queue of Linux holds a few datagrams (net.unix.max_dgram_qlen); then a sender that may wait would wait.
    @Test func notifierDoesNotBlockOnAFullSocket() throws {
        let reader = try UnreadDatagrams()
        defer { reader.close() }
        var refusal: SystemError?
        for _ in 0..<100_000 where refusal == nil {
            do throws(SystemError) {
                try ServiceSupervisor.send("WATCHDOG=1", to: reader.path)
            } catch {
                refusal = error
            }
        }
        #expect(refusal == .wouldBlock)
    }
}

/// A datagram socket that is not read.
private final class UnreadDatagrams {
    let path: String
    private let descriptor: Int32

    init() throws {
        self.path = NSTemporaryDirectory() + "notify-\(UUID().uuidString.prefix(8))"
        self.descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: self.path.utf8.prefix($0.count - 1)) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let status = withUnsafeBytes(of: &name) { bytes in
            bytes.assumingMemoryBound(to: sockaddr.self).baseAddress.map { bind(self.descriptor, $0, length) }
        }
        guard status == 0 else { throw SystemError(errno) }
    }

    func close() {
        _ = Foundation.close(self.descriptor)
        _ = unlink(self.path)
    }
}
