import ArgumentParser
import Foundation
import URLLoading

struct LoadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "load", abstract: "Load URLs one after the other; a line for each.")

    @Argument var urls: [String]
    @OptionGroup var requests: RequestOptions
    @OptionGroup var sessions: SessionOptions
    @Option(help: "How often to load all of them.") var times = 1
    @Option(help: "Milliseconds between two loads.") var pause = 0
    @Flag(help: "Load all of them at once.") var together = false
    @Option(help: ArgumentHelp("Write the content to a file.", valueName: "file")) var output: String?
    @Option(help: ArgumentHelp("Use a download task, and put its file here.", valueName: "file")) var download: String?
    @Option(help: ArgumentHelp("Answer the response with this.", valueName: "allow|cancel|download"))
    var disposition = Disposition.allow
    @Option(help: ArgumentHelp("Cancel the task once so much has come.", valueName: "bytes")) var cancelAfter: Int64?
    @Option(
        help: ArgumentHelp(
            "With --cancel-after: write what a download goes on with; else go on with it.", valueName: "file"))
    var resumeData: String?

    enum Disposition: String, ExpressibleByArgument {
        case allow, cancel, download

        var answer: URLSession.ResponseDisposition {
            switch self {
            case .allow: .allow
            case .cancel: .cancel
            case .download: .becomeDownload
            }
        }
    }

    func run() async throws {
        let places = try self.urls.map { text in
            guard let url = URL(string: text) else { throw ValidationError("'\(text)' is no URL") }
            return url
        }
        guard let first = places.first else { throw ValidationError("no URL is given") }
        let transfers = Transfers(answers: try self.sessions.answers())
        let session = URLSession(
            configuration: self.sessions.configuration(for: first), delegate: transfers, delegateQueue: nil)
        let all = Array(repeating: places, count: max(1, self.times)).flatMap { $0 }
        let reports =
            self.together
            ? try await self.together(all, session, transfers) : try await self.inSequence(all, session, transfers)
        for report in reports { try JSONLine.print(report) }
        session.finishTasksAndInvalidate()
        await transfers.invalidated()
        if reports.contains(where: { $0.error != nil }) { throw ExitCode.failure }
    }

    private func inSequence(
        _ urls: [URL], _ session: URLSession, _ transfers: Transfers
    ) async throws -> [TransferReport] {
        var reports: [TransferReport] = []
        for (index, url) in urls.enumerated() {
            if index > 0, self.pause > 0 { try await Task.sleep(for: .milliseconds(self.pause)) }
            reports.append(await self.begin(url, session, transfers, try self.requests.request(url)).report())
        }
        return reports
    }

    private func together(
        _ urls: [URL], _ session: URLSession, _ transfers: Transfers
    ) async throws -> [TransferReport] {
        var begun: [Transfer] = []
        for url in urls { begun.append(self.begin(url, session, transfers, try self.requests.request(url))) }
        var reports: [TransferReport] = []
        for transfer in begun { reports.append(await transfer.report()) }
        return reports
    }

    private func begin(
        _ url: URL, _ session: URLSession, _ transfers: Transfers, _ request: URLRequest
    ) -> Transfer {
        let task = self.task(session, request)
        let transfer = Transfer(
            task,
            actions: TransferActions(
                output: self.output ?? self.download, stream: self.requests.stream,
                disposition: self.disposition.answer, stayHere: self.requests.stayHere,
                cancelAfter: self.cancelAfter, resumeData: self.cancelAfter == nil ? nil : self.resumeData))
        transfers.add(transfer)
        task.resume()
        return transfer
    }

    private func task(_ session: URLSession, _ request: URLRequest) -> URLSessionTask {
        if let upload = self.requests.upload {
            return session.uploadTask(with: request, fromFile: URL(fileURLWithPath: upload))
        }
        if self.requests.stream != nil { return session.uploadTask(withStreamedRequest: request) }
        guard self.download != nil else { return session.dataTask(with: request) }
        if self.cancelAfter == nil, let resumeData, let data = FileManager.default.contents(atPath: resumeData) {
            return session.downloadTask(withResumeData: data)
        }
        return session.downloadTask(with: request)
    }
}
