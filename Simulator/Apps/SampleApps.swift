package import TidemarkTesting

/// Apps that have nothing in common but sync: each one does what the others do not.
package enum SampleApps {
    package static let all: [(name: String, app: SimulatedApp)] = [
        ("task", TaskApp.app), ("ledger", LedgerApp.app), ("shelf", ShelfApp.app), ("order", OrderApp.app),
        ("notebook", NotebookApp.app), ("trigger", TriggerApp.app), ("migrating", MigratingApp.app),
        ("catalog", CatalogApp.app), ("taskparts", TaskApp.parted), ("shelfparts", ShelfApp.parted),
        ("album", AlbumApp.app),
    ]

    /// Those that are too small for worlds of many steps, and small enough for all worlds of a few.
    package static let small: [(name: String, app: SimulatedApp)] = [("card", CardApp.app), ("folder", FolderApp.app)]

    package static subscript(_ name: String) -> SimulatedApp? {
        (all + small).first { $0.name == name }?.app
    }
}
