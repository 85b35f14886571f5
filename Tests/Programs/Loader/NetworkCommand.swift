import ArgumentParser
import Foundation
import URLLoading

struct NetworkCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "network",
        abstract: "Load a URL, or keep a stream (tcp://HOST:PORT) open; a line for each event when it happens.")

    @Argument var url: String
    @Flag(help: "Wait for a network.") var waits = false
    @Flag(help: "No mobile networks.") var noCellular = false
    @Flag(help: "No networks that are paid for.") var noExpensive = false
    @Flag(help: "No networks of which little is to be used.") var noConstrained = false
    @Flag(help: "Multipath TCP.") var multipath = false
    @Option(help: "Seconds for the whole task.") var resourceTimeout: Double?

    func run() async throws {
        guard let url = URL(string: self.url) else { throw ValidationError("'\(self.url)' is no URL") }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.waitsForConnectivity = self.waits
        configuration.allowsCellularAccess = !self.noCellular
        configuration.allowsExpensiveNetworkAccess = !self.noExpensive
        configuration.allowsConstrainedNetworkAccess = !self.noConstrained
        configuration.multipathServiceType = self.multipath ? .handover : .none
        if let resourceTimeout { configuration.timeoutIntervalForResource = resourceTimeout }
        let reporter = NetworkReporter()
        let session = URLSession(configuration: configuration, delegate: reporter, delegateQueue: nil)
        let task: URLSessionTask =
            if url.scheme == "tcp", let host = url.host, let port = url.port {
                session.streamTask(withHostName: host, port: port)
            } else {
                session.dataTask(with: url)
            }
        task.resume()
        session.finishTasksAndInvalidate()
        for await line in reporter.lines {
            try FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8))
        }
    }
}

/// Reports the events of a task as lines.
private final class NetworkReporter: NSObject, URLSessionDataDelegate, URLSessionStreamDelegate, Sendable {
    let lines: AsyncStream<String>
    private let continuation: AsyncStream<String>.Continuation

    override init() {
        (self.lines, self.continuation) = AsyncStream.makeStream(of: String.self)
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        self.continuation.finish()
    }

    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
        self.continuation.yield("waiting")
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        self.continuation.yield("data \(String(decoding: data, as: UTF8.self))")
    }

    func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask) {
        self.continuation.yield("better route")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        for one in metrics.transactionMetrics where one.remoteAddress != nil {
            let words = [
                one.isCellular ? "cellular" : nil, one.isExpensive ? "expensive" : nil,
                one.isConstrained ? "constrained" : nil, one.isMultipath ? "multipath" : nil,
            ]
            self.continuation.yield(
                (["connection from", one.localAddress] + words).compactMap { $0 }.joined(separator: " "))
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let failure = (error as? URLError).map { error in
            "failed \(error.code.rawValue)" + (error.networkUnavailableReason.map { " \($0)" } ?? "")
        }
        self.continuation.yield(failure ?? "completed")
    }
}
