extension ControlSettings {
    init(reading section: SectionReader<ControlKey>) {
        self.init()
        var url = self.address.map { ControlURL($0) }
        section.readOrNone(.address, into: &url, as: .controlURL)
        self.address = url?.address
        self.isExplicit = section.has(.address)
        section.read(.closedConnections, into: &self.closedConnections, as: .integer(0...100_000))
        section.read(.keepHandshakes, into: &self.keepsHandshakes, as: .boolean)
        if let transfers = section.section(.transfers, keys: TransferKey.self) {
            self.transfers = TransferSettings(reading: transfers)
        }
        guard section.has(.mode) else { return }
        guard case .unix(let path, let standard)? = self.address else {
            section.add(.mode, expected: "no mode, as only a Unix socket has one", remedy: "leave it out")
            return
        }
        self.address = .unix(path: path, mode: section.value(.mode, as: .permissions) ?? standard)
    }
}
