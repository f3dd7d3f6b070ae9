package io.github.connectpy.spark;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFileAttributeView;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's local files, whose permissions are set by a call of the system: Hadoop itself starts a `chmod` for each file that it creates. */
public final class LocalFiles extends LocalFileSystem {

    public LocalFiles() {
        super(new Raw());
    }

    private static final class Raw extends RawLocalFileSystem {

        @Override
        public void setPermission(Path path, FsPermission permission) throws IOException {
            PosixFileAttributeView file = Files.getFileAttributeView(pathToFile(path).toPath(), PosixFileAttributeView.class);
            if (file == null || permission.getStickyBit()) {
                super.setPermission(path, permission);
            } else {
                String text = permission.getUserAction().SYMBOL + permission.getGroupAction().SYMBOL + permission.getOtherAction().SYMBOL;
                file.setPermissions(PosixFilePermissions.fromString(text));
            }
        }
    }
}
