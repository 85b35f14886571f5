import BackgroundTransfers
import Foundation
import StreamTransport
import TransferDaemon
import URLLoading

/// A daemon within a test, with folders of its own. It serves as long as the object or a delegate of its sessions exists.
final class BackgroundDaemon: Sendable {
    let folders: TransferFolders
    private let folder: TemporaryFolder
    /// Keeps the daemon from ending; it ends some time after this is closed.
    private let observer: DaemonLink

    init(_ change: (inout DaemonSettings) -> Void = { _ in }) async throws {
        let folder = try TemporaryFolder()
        let folders = TransferFolders(runtime: "\(folder.url.path)/r", state: "\(folder.url.path)/s")
        var settings = DaemonSettings()
        settings.idleLimit = .seconds(120)
        settings.jitter = { 0 }
        change(&settings)
        self.folder = folder
        self.folders = folders
        self.observer = DaemonLink(observing: folders, on: try LoopGroup(count: 1).loops[0]) {
            .cannotStart("not in this test")
        }
        let began = Outcome<Bool>()
        SystemThread.start(named: "transferd") { [settings] in
            do {
                _ = try DaemonProcess.run(folders, settings) { began.give(true) }
            } catch {
                began.give(false)
            }
        }
        guard try await began.value() else { throw POSIXError(.EIO) }
        if let failure = self.observer.attach(within: .seconds(60), { _ in }) { throw failure }
    }

    deinit { self.observer.close() }

    func session(
        _ delegate: (any URLSessionDelegate)? = nil, _ identifier: String = "test",
        _ change: (URLSessionConfiguration) -> Void = { _ in }
    ) -> URLSession {
        (delegate as? any DaemonHolding)?.hold(self)
        return URLSession.background(identifier, self.folders, delegate, change)
    }

    /// A program that is connected to the daemon, without a session.
    func program(_ identifier: String = "test") throws -> DaemonLink {
        let link = DaemonLink(
            on: try LoopGroup(count: 1).loops[0], folders: self.folders,
            attachment: SessionAttachment(
                identifier: identifier, settings: SessionSettings(), isLaunchedForEvents: false, isReattachment: false)
        ) { .cannotStart("not in this test") }
        if let failure = link.attach(within: .seconds(60), { _ in }) { throw failure }
        return link
    }
}

/// A delegate that keeps its session's daemon alive.
protocol DaemonHolding: AnyObject {
    func hold(_ daemon: BackgroundDaemon)
}

extension URLSession {
    /// A background session that starts no daemon, and has no shared stores and no proxies.
    static func background(
        _ identifier: String, _ folders: TransferFolders, _ delegate: (any URLSessionDelegate)?,
        _ change: (URLSessionConfiguration) -> Void = { _ in }
    ) -> URLSession {
        let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
        configuration.httpCookieStorage = nil
        configuration.urlCredentialStorage = nil
        configuration.connectionProxyDictionary = [:]
        configuration.transferFolders = folders
        configuration.transferDaemonPath = "/nonexistent"
        change(configuration)
        return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }
}
