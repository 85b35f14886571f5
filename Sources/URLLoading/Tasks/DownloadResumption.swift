import Foundation
import HTTPSemantics

/// A download that goes on: what the program gave, understood.
struct DownloadResumption {
    let data: ResumeData
    let resumption: Resumption

    /// - Returns: `nil` for data that cannot be read.
    init?(_ data: Data) {
        guard let data = ResumeData(data),
            let resumption = Resumption(offset: data.bytesReceived, validator: data.validator)
        else { return nil }
        self.data = data
        self.resumption = resumption
    }

    var originalRequest: URLRequest { self.data.originalRequest }
    var currentRequest: URLRequest { self.data.currentRequest }

    /// The file of the former attempt; `nil` where it is not what it was.
    func file() -> DownloadFile? {
        try? DownloadFile(resuming: self.data.file, at: self.resumption.offset)
    }
}
