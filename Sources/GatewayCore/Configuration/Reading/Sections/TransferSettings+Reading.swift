extension TransferSettings {
    init(reading section: SectionReader<TransferKey>) {
        self.init()
        section.readList(.directories, into: &self.directories, as: .path)
        for (index, path) in self.directories.enumerated() where !path.hasPrefix("/") {
            section.problems.add(
                at: section.path(.directories).index(index), expected: "a path from the top",
                found: QuotedText.quoted(path),
                remedy: "begin it with /")
        }
        section.read(.maxTransfers, into: &self.maximumTransfers, as: .integer(1...10_000))
        section.read(.maxRunning, into: &self.maximumRunning, as: .integer(1...1000))
        section.read(.maxBody, into: &self.maximumBody, as: .size(1024...(1 << 30)))
        section.read(.maxMemory, into: &self.maximumMemory, as: .size(1024...(16 << 30)))
        self.credentials = section.elements(.credentials).map {
            TransferCredential(reading: SectionReader($0.node, at: $0.path, problems: section.problems))
        }
        self.refuseRepeatedNames(section)
    }

    private func refuseRepeatedNames(_ section: SectionReader<TransferKey>) {
        for (index, credential) in self.credentials.enumerated() where !credential.name.isEmpty {
            guard self.credentials.prefix(index).contains(where: { $0.name == credential.name }) else { continue }
            section.problems.add(
                at: section.path(.credentials).index(index).key("name"),
                expected: "a name that no other credential has", remedy: "choose another")
        }
    }
}
